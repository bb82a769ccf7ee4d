"""The request handlers, one file per API.

A handler validates the request, calls the components that store the cluster's data, and builds the response. It imports no other handler. A
handler itself charges only the controller mutation quota. The broker charges all other quotas after the handler has returned.
"""
