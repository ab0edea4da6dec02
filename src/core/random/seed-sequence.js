const POOL_SIZE = 4;
/**
 * Turns a seed into well mixed words (O'Neill's seed_seq alternative, as in NumPy's SeedSequence).
 * Different `spawnKey`s of one seed give independent streams.
 */
export class SeedSequence {
    pool;
    /** @throws RangeError when a part of the seed is negative or not an integer. */
    constructor(seed, spawnKey = []) {
        const entropy = (Array.isArray(seed) ? seed : [seed]).flatMap((part) => toWords(part));
        if (spawnKey.length > 0) {
            while (entropy.length < POOL_SIZE)
                entropy.push(0);
            entropy.push(...spawnKey.flatMap((part) => toWords(part)));
        }
        this.pool = mixEntropy(entropy);
    }
    /** The first `count` 32-bit words of the sequence. */
    generateState(count) {
        const state = new Uint32Array(count);
        let constant = 0x8b51f9dd;
        for (let i = 0; i < count; i++) {
            let word = this.pool[i % POOL_SIZE] ^ constant;
            constant = Math.imul(constant, 0x58f38ded);
            word = Math.imul(word, constant);
            state[i] = word ^ (word >>> 16);
        }
        return state;
    }
}
/** 32-bit words of a non-negative integer, low word first; at least one. */
function toWords(value) {
    if (typeof value === "number" && !Number.isSafeInteger(value))
        throw new RangeError(`A seed must be an integer, got ${value}. Use a bigint above 2^53.`);
    let rest = BigInt(value);
    if (rest < 0n)
        throw new RangeError(`A seed must be at least 0, got ${value}.`);
    const parts = [];
    do {
        parts.push(Number(rest & 0xffffffffn));
        rest >>= 32n;
    } while (rest > 0n);
    return parts;
}
function mixEntropy(entropy) {
    const pool = new Uint32Array(POOL_SIZE);
    let constant = 0x43b0d7e5;
    const hash = (value) => {
        let word = value ^ constant;
        constant = Math.imul(constant, 0x931e8875);
        word = Math.imul(word, constant);
        return word ^ (word >>> 16);
    };
    const mixInto = (target, value) => {
        const word = Math.imul(0xca01f9dd, pool[target]) - Math.imul(0x4973f715, hash(value));
        pool[target] = word ^ (word >>> 16);
    };
    for (let i = 0; i < POOL_SIZE; i++)
        pool[i] = hash(entropy[i] ?? 0);
    for (let source = 0; source < POOL_SIZE; source++) {
        for (let target = 0; target < POOL_SIZE; target++) {
            if (source !== target)
                mixInto(target, pool[source]);
        }
    }
    for (let source = POOL_SIZE; source < entropy.length; source++) {
        for (let target = 0; target < POOL_SIZE; target++)
            mixInto(target, entropy[source]);
    }
    return pool;
}
