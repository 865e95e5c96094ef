"""The namespaces of Atom and of OData in it. Source: reference §7."""

ATOM = "http://www.w3.org/2005/Atom"
DATA = "http://schemas.microsoft.com/ado/2007/08/dataservices"
METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
SCHEME = "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme"
