/** Returns the promise of a key, or creates it. A rejected one is dropped, so that the next call tries again. */
export function getOrCreatePromise(cache, key, create) {
    const cached = cache.get(key);
    if (cached !== undefined)
        return cached;
    const created = create();
    cache.set(key, created);
    created.catch(() => {
        if (cache.get(key) === created)
            cache.delete(key);
    });
    return created;
}
/** A value that is created at the first call of `get`; a failed creation is tried again at the next. */
export class LazyPromise {
    create;
    cache = new Map();
    constructor(create) {
        this.create = create;
    }
    get() {
        return getOrCreatePromise(this.cache, undefined, this.create);
    }
    /** Returns the value if it was asked for. */
    peek() {
        return this.cache.get(undefined);
    }
}
