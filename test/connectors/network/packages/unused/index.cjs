"use strict"
/** `@atproto/aws`. */
exports.KmsKeypair = class {}
exports.S3BlobStore = class {}
