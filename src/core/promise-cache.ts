/** The part of Map and LruCache that a cache of promises needs. */
export interface PromiseCache<Key, Value> {
  get(key: Key): Promise<Value> | undefined;
  set(key: Key, value: Promise<Value>): unknown;
  delete(key: Key): unknown;
}

/**
 * Returns the promise of a key, or creates it. A rejected one is dropped, so that the next call
 * tries again.
 */
export function getOrCreatePromise<Key, Value>(
  cache: PromiseCache<Key, Value>,
  key: Key,
  create: () => Promise<Value>,
): Promise<Value> {
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const created = create();
  cache.set(key, created);
  created.catch(() => {
    if (cache.get(key) === created) cache.delete(key);
  });
  return created;
}

/**
 * A value that is created at the first call of `get`; a failed creation is tried again at the next.
 */
export class LazyPromise<Value> {
  private readonly cache = new Map<undefined, Promise<Value>>();

  constructor(private readonly create: () => Promise<Value>) {}

  get(): Promise<Value> {
    return getOrCreatePromise(this.cache, undefined, this.create);
  }

  /** Returns the value if it was asked for. */
  peek(): Promise<Value> | undefined {
    return this.cache.get(undefined);
  }
}
