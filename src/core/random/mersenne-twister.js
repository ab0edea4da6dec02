import { invalidArgument } from "../errors.js";
const SIZE = 624;
const SHIFT = 397;
const TWO_32 = 4294967296;
/** MT19937 (Matsumoto and Nishimura 1998), seeded by its array of 32-bit words. */
export class MersenneTwister {
    words = new Uint32Array(SIZE);
    index = SIZE;
    constructor(key) {
        const { words } = this;
        fill(words, 19650218);
        let i = 1;
        let j = 0;
        for (let k = Math.max(SIZE, key.length); k > 0; k--) {
            words[i] = (words[i] ^ Math.imul(words[i - 1] ^ (words[i - 1] >>> 30), 1664525)) + key[j] + j;
            if (++i >= SIZE) {
                words[0] = words[SIZE - 1];
                i = 1;
            }
            if (++j >= key.length)
                j = 0;
        }
        for (let k = SIZE - 1; k > 0; k--) {
            words[i] = (words[i] ^ Math.imul(words[i - 1] ^ (words[i - 1] >>> 30), 1566083941)) - i;
            if (++i >= SIZE) {
                words[0] = words[SIZE - 1];
                i = 1;
            }
        }
        words[0] = 0x80000000;
    }
    /** Draws 32 bits as an integer. */
    next32() {
        if (this.index >= SIZE)
            this.twist();
        let y = this.words[this.index++];
        y ^= y >>> 11;
        y ^= (y << 7) & 0x9d2c5680;
        y ^= (y << 15) & 0xefc60000;
        return (y ^ (y >>> 18)) >>> 0;
    }
    getState() {
        return { words: [...this.words], index: this.index };
    }
    /** @throws INVALID_ARGUMENT for a value that `getState` does not return. */
    setState({ words, index }) {
        const isWord = (word) => Number.isInteger(word) && word >= 0 && word < TWO_32;
        const isIndex = Number.isInteger(index) && index >= 0 && index <= SIZE;
        if (!isIndex || !Array.isArray(words) || words.length !== SIZE || !words.every(isWord))
            throw invalidArgument(`A Mersenne Twister's state is ${SIZE} words of 32 bits and an index from 0 to ${SIZE}.`);
        this.words.set(words);
        this.index = index;
    }
    twist() {
        const { words } = this;
        for (let i = 0; i < SIZE; i++) {
            const y = (words[i] & 0x80000000) | (words[(i + 1) % SIZE] & 0x7fffffff);
            words[i] = words[(i + SHIFT) % SIZE] ^ (y >>> 1) ^ ((y & 1) === 0 ? 0 : 0x9908b0df);
        }
        this.index = 0;
    }
}
function fill(words, seed) {
    words[0] = seed;
    for (let i = 1; i < SIZE; i++)
        words[i] = Math.imul(1812433253, words[i - 1] ^ (words[i - 1] >>> 30)) + i;
}
