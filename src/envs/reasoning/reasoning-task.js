/** Random draws of one item within the settings of a level. */
export class Draw {
    random;
    settings;
    constructor(random, settings) {
        this.random = random;
        this.settings = settings;
    }
    /** Draws an integer in [low, high]. */
    int(low, high) {
        return this.random.integers(low, high + 1);
    }
    /** Draws an integer in a range of the settings. */
    setting(name) {
        return this.int(...this.range(name));
    }
    range(name) {
        return this.settings[name];
    }
    pick(values) {
        return this.random.choice(values);
    }
    /** Draws different values in random order. */
    subset(values, count) {
        return this.random.sampleIndices(values.length, count).map((i) => values[i]);
    }
    list(count, draw) {
        return Array.from({ length: count }, draw);
    }
}
