"use strict"
module.exports = {}
