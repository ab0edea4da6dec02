/** A map of at most `maxSize` values; adding one more drops the least recently used. */
export class LruCache<Value> {
  // A Map iterates in insertion order, so the first key is the least recently used.
  private readonly values = new Map<string, Value>();

  constructor(private readonly maxSize: number) {}

  get(key: string): Value | undefined {
    const value = this.values.get(key);
    if (value === undefined) return undefined;
    this.values.delete(key);
    this.values.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.values.delete(key);
    this.values.set(key, value);
    if (this.values.size <= this.maxSize) return;
    const [oldest] = this.values.keys();
    this.values.delete(oldest);
  }

  getOrCreate(key: string, create: () => Value): Value {
    const cached = this.get(key);
    if (cached !== undefined) return cached;
    const value = create();
    this.set(key, value);
    return value;
  }

  delete(key: string): void {
    this.values.delete(key);
  }

  clear(): void {
    this.values.clear();
  }
}
