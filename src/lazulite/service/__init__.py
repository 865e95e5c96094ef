"""What every service needs: CORS, service properties, statistics, signed identifiers, time slices."""
