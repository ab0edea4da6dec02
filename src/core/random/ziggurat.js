import { exponentialAccept, exponentialDensity, exponentialWidth, normalAccept, normalDensity, normalWidth, } from "./ziggurat-tables.js";
const NORMAL_TAIL = 3.654152885361009;
const NORMAL_TAIL_INVERSE = 0.2736612373297583;
const EXPONENTIAL_TAIL = 7.69711747013105;
/** A standard normal value by the ziggurat method. */
export function standardNormal(bits) {
    for (;;) {
        bits.next();
        const layer = bits.low & 0xff;
        const sign = (bits.low >>> 8) & 1;
        // 52 bits above the layer and the sign.
        const magnitude = ((bits.high >>> 0) % 536870912) * 8388608 + (bits.low >>> 9);
        const x = magnitude * normalWidth[layer] * (sign === 1 ? -1 : 1);
        if (magnitude < normalAccept[layer])
            return x;
        if (layer === 0) {
            for (;;) {
                const beyond = -NORMAL_TAIL_INVERSE * Math.log1p(-bits.nextDouble());
                const height = -Math.log1p(-bits.nextDouble());
                // The tail's side is the ninth bit of the magnitude.
                if (height + height > beyond * beyond)
                    return Math.floor(magnitude / 256) % 2 === 1 ? -(NORMAL_TAIL + beyond) : NORMAL_TAIL + beyond;
            }
        }
        const below = normalDensity[layer];
        if ((normalDensity[layer - 1] - below) * bits.nextDouble() + below < Math.exp(-0.5 * x * x))
            return x;
    }
}
/** A standard exponential value by the ziggurat method. */
export function standardExponential(bits) {
    for (;;) {
        bits.next();
        const layer = (bits.low >>> 3) & 0xff;
        const magnitude = (bits.high >>> 0) * 2097152 + (bits.low >>> 11);
        const x = magnitude * exponentialWidth[layer];
        if (magnitude < exponentialAccept[layer])
            return x;
        if (layer === 0)
            return EXPONENTIAL_TAIL - Math.log1p(-bits.nextDouble());
        const below = exponentialDensity[layer];
        if ((exponentialDensity[layer - 1] - below) * bits.nextDouble() + below < Math.exp(-x))
            return x;
    }
}
