"""The error codes of the Blob service alone, in the order of their names, and its own texts.

Source: REST reference, Blob service error codes; recordings of the live service where they differ.

Importing the package `lazulite.blob` registers the codes, so that each of its modules can raise them.
"""

from collections.abc import Mapping

CODES: dict[str, tuple[int, str]] = {
    "AccessTierNotSupportedForBlobType": (400, "The access tier is not supported for this blob type."),
    "AppendPositionConditionNotMet": (412, "The append position condition specified was not met."),
    "BlobAlreadyExists": (409, "The specified blob already exists."),
    "BlobArchived": (409, "This operation is not permitted on an archived blob."),
    "BlobBeingRehydrated": (409, "This operation is not permitted because the blob is being rehydrated."),
    "BlobDoesNotUseCustomerSpecifiedEncryption": (
        409,
        "The blob is not encrypted with customer specified encryption, but it was provided in the request.",
    ),
    "BlobImmutableDueToPolicy": (409, "This operation is not permitted as the blob is immutable due to a policy."),
    "BlobIsSealed": (409, "The blob is sealed and its contents cannot be modified."),
    "BlobNotFound": (404, "The specified blob does not exist."),
    "BlobOverwritten": (409, "The blob has been recreated since the previous snapshot was taken."),
    "BlobTierInadequateForContentLength": (
        409,
        "Specified blob tier size limit cannot be less than content length.",
    ),
    "BlobUsesCustomerSpecifiedEncryption": (
        409,
        "The blob is encrypted with customer specified encryption, but it was not provided in the request.",
    ),
    "BlockCountExceedsLimit": (409, "The committed block count cannot exceed the maximum limit of 50,000 blocks."),
    "BlockListTooLong": (400, "The block list may not contain more than 50,000 blocks."),
    "BothCrc64AndMd5HeaderPresent": (400, "Both x-ms-content-crc64 header and Content-MD5 header are present."),
    "BothUserTagsAndSourceTagsCopyPresentException": (
        400,
        "x-ms-tags header must not be specified with x-ms-copy-source-tag-option COPY.",
    ),
    "CannotChangeToLowerTier": (409, "A higher blob tier has already been explicitly set."),
    "CannotVerifyCopySource": (409, "Could not verify the copy source within the specified time."),
    "ConditionNotMet": (412, "The condition specified using HTTP conditional header(s) is not met."),
    "ContainerAlreadyExists": (409, "The specified container already exists."),
    "ContainerBeingDeleted": (409, "The specified container is being deleted. Try operation later."),
    "ContainerDisabled": (409, "The specified container has been disabled by the administrator."),
    "ContainerNotFound": (404, "The specified container does not exist."),
    "CopyIdMismatch": (409, "The specified copy ID did not match the copy ID for the pending copy operation."),
    "Crc64Mismatch": (
        400,
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.",
    ),
    "DuplicateTagNames": (400, "The tags specified contain duplicate names."),
    "EmptyTagName": (400, "The name of one of the tag key-value pairs is empty."),
    "FeatureVersionMismatch": (409, "The operation for AppendBlob requires at least version 2015-02-21."),
    "IncrementalCopyBlobMismatch": (
        409,
        "The specified source blob is different than the copy source of the existing incremental copy blob.",
    ),
    "IncrementalCopyOfEarlierSnapshotNotAllowed": (
        409,
        "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob.",
    ),
    "IncrementalCopySourceMustBeSnapshot": (409, "The source for incremental copy request must be a snapshot."),
    "InfiniteLeaseDurationRequired": (
        412,
        "The lease ID matched, but the specified lease must be an infinite-duration lease.",
    ),
    "InvalidBlobOrBlock": (400, "The specified blob or block content is invalid."),
    "InvalidBlobTier": (400, "The specified blob tier is invalid."),
    "InvalidBlobType": (409, "The blob type is invalid for this operation."),
    "InvalidBlockId": (400, "The specified block ID is invalid. The block ID must be Base64-encoded."),
    "InvalidBlockList": (400, "The specified block list is invalid."),
    "InvalidOperation": (400, "Invalid operation against a blob snapshot."),
    "InvalidPageRange": (416, "The page range specified is invalid."),
    "InvalidRange": (416, "The range specified is invalid for the current size of the resource."),
    "InvalidTag": (400, "The tags specified are invalid. It contains characters that are not permitted."),
    "InvalidVersionForPageBlobOperation": (
        400,
        "All operations on page blobs require at least version 2009-09-19.",
    ),
    "LeaseAlreadyPresent": (409, "There is already a lease present."),
    "LeaseIdMismatchWithBlobOperation": (
        412,
        "The lease ID specified did not match the lease ID for the blob.",
    ),
    "LeaseIdMismatchWithContainerOperation": (
        412,
        "The lease ID specified did not match the lease ID for the container.",
    ),
    "LeaseIdMismatchWithLeaseOperation": (
        409,
        "The lease ID specified did not match the lease ID for the blob.",
    ),
    "LeaseIdMissing": (
        412,
        "There is currently a lease on the blob and no lease ID was specified in the request.",
    ),
    "LeaseIsBreakingAndCannotBeAcquired": (
        409,
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
    ),
    "LeaseIsBreakingAndCannotBeChanged": (
        409,
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
    ),
    "LeaseIsBrokenAndCannotBeRenewed": (
        409,
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
    ),
    "LeaseLost": (412, "A lease ID was specified, but the lease for the blob has expired."),
    "LeaseNotPresentWithBlobOperation": (412, "There is currently no lease on the blob."),
    "LeaseNotPresentWithContainerOperation": (412, "There is currently no lease on the container."),
    "LeaseNotPresentWithLeaseOperation": (409, "There is currently no lease on the blob."),
    "MaxBlobSizeConditionNotMet": (412, "The max blob size condition specified was not met."),
    "MultipleConditionHeadersNotSupported": (400, "Multiple condition headers are not supported."),
    "NoPendingCopyOperation": (409, "There is currently no pending copy operation."),
    "OperationNotAllowedOnIncrementalCopyBlob": (
        409,
        "The specified operation is not allowed on an incremental copy blob.",
    ),
    "OperationNotAllowedOnRootBlob": (403, "The specified operation is not allowed on root blob."),
    "PendingCopyOperation": (409, "There is currently a pending copy operation."),
    "PreviousSnapshotCannotBeNewer": (
        400,
        "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.",
    ),
    "PreviousSnapshotNotFound": (409, "The previous snapshot is not found."),
    "PreviousSnapshotOperationNotSupported": (
        409,
        "Differential Get Page Ranges is not supported on the previous snapshot.",
    ),
    "PublicAccessNotPermitted": (409, "Public access is not permitted on this storage account."),
    "SequenceNumberConditionNotMet": (412, "The sequence number condition specified was not met."),
    "SequenceNumberIncrementTooLarge": (
        409,
        "The sequence number increment cannot be performed because it would result in overflow of the sequence number.",
    ),
    "SnapshotsPresent": (409, "This operation is not permitted while the blob has snapshots."),
    "SourceConditionNotMet": (
        412,
        "The source condition specified using HTTP conditional header(s) is not met.",
    ),
    "TagsTooLarge": (400, "The tags specified exceed the maximum permissible limit."),
    "TargetConditionNotMet": (
        412,
        "The target condition specified using HTTP conditional header(s) is not met.",
    ),
    "UnauthorizedBlobOverwrite": (403, "This request is not authorized to perform blob overwrites."),
    "UnsatisfiableCondition": (400, "The request includes an unsatisfiable condition for this operation."),
    "WebContentNotFound": (404, "The requested content does not exist."),
}

MESSAGES: Mapping[str, str] = {
    "InvalidMd5": (
        "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded."
    ),
    "InvalidMetadata": "The metadata specified is invalid. It has characters that are not permitted.",
}
"""The texts of shared codes that differ from the catalogue's."""

CONTAINER_MESSAGES: Mapping[str, str] = {
    "LeaseIdMismatchWithLeaseOperation": CODES["LeaseIdMismatchWithContainerOperation"][1],
    "LeaseIdMissing": "There is currently a lease on the container and no lease ID was specified in the request.",
    "LeaseLost": "A lease ID was specified, but the lease for the container has expired.",
    "LeaseNotPresentWithLeaseOperation": CODES["LeaseNotPresentWithContainerOperation"][1],
}
"""The texts of codes about a container's lease; by default they are about a blob's."""
