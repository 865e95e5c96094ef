"""The payloads of the Blob service: XML, multipart and structured bodies, read and written."""
