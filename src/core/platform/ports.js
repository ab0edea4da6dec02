/**
 * What llamagym needs of its host in addition to the ECMAScript and web globals (fetch, timers, streams,
 * crypto.randomUUID, MessageChannel). `#platform` is an implementation of all of them.
 */
export {};
