/**
 * Counts a value once per started 1,024 characters of its key, for keys that contain prompts: long
 * ones take the memory.
 */
export function sizeByKey(key: string): number {
  return Math.max(1, Math.ceil(key.length / 1024));
}

/**
 * A map whose values have at most the size `maxSize` in all; adding one drops the least recently
 * used. By default each value has the size 1. The value added last is kept whatever its size.
 */
export class LruCache<Value> {
  // A Map iterates in insertion order, so the first key is the least recently used.
  private readonly values = new Map<string, Value>();

  private size = 0;

  constructor(
    private readonly maxSize: number,
    private readonly sizeOf: (key: string, value: Value) => number = () => 1,
  ) {}

  get(key: string): Value | undefined {
    const value = this.values.get(key);
    if (value === undefined) return undefined;
    this.values.delete(key);
    this.values.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    this.delete(key);
    this.values.set(key, value);
    this.size += this.sizeOf(key, value);
    for (const oldest of this.values.keys()) {
      if (this.size <= this.maxSize || oldest === key) return;
      this.delete(oldest);
    }
  }

  getOrCreate(key: string, create: () => Value): Value {
    const cached = this.get(key);
    if (cached !== undefined) return cached;
    const value = create();
    this.set(key, value);
    return value;
  }

  delete(key: string): void {
    const value = this.values.get(key);
    if (value === undefined) return;
    this.values.delete(key);
    this.size -= this.sizeOf(key, value);
  }

  clear(): void {
    this.values.clear();
    this.size = 0;
  }
}
