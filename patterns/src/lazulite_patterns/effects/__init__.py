"""Effects, of which protocols are made, and the driver that performs them."""
