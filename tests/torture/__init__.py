"""The worst days, on purpose: crashes, power cuts, broken disks, hostile clients and clocks."""
