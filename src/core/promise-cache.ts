/** The part of Map and LruCache that a cache of promises needs. */
export interface PromiseCache<Key, Value> {
  get(key: Key): Promise<Value> | undefined;
  set(key: Key, value: Promise<Value>): unknown;
  delete(key: Key): unknown;
}

/** Returns the promise of a key, or creates it. A rejected one is dropped, so that the next call tries again. */
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
