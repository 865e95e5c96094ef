"""The PostgreSQL engine: any number of processes on one database that speaks PostgreSQL's wire protocol."""
