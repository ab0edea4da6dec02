/** A merge candidate: its rank and the position of its first symbol. */
export interface MergeCandidate {
  readonly rank: number;
  readonly position: number;
}

/** A binary heap of merge candidates by rank, then position. */
export class MergeHeap {
  private readonly keys: number[] = [];

  /**
   * @param positions exclusive upper bound of positions; rank and position share one number, exact
   * up to 2^53
   */
  constructor(private readonly positionCount: number) {}

  push(rank: number, position: number): void {
    const { keys } = this;
    const key = rank * this.positionCount + position;
    let index = keys.length;
    keys.push(key);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (keys[parent] <= key) break;
      keys[index] = keys[parent];
      index = parent;
    }
    keys[index] = key;
  }

  pop(): MergeCandidate | null {
    const { keys } = this;
    const last = keys.pop();
    if (last === undefined) return null;
    const top = keys.length > 0 ? keys[0] : last;
    if (keys.length > 0) this.siftDown(last);
    return { rank: Math.floor(top / this.positionCount), position: top % this.positionCount };
  }

  /** Replaces the top and restores the order. */
  private siftDown(key: number): void {
    const { keys } = this;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= keys.length) break;
      if (child + 1 < keys.length && keys[child + 1] < keys[child]) child++;
      if (keys[child] >= key) break;
      keys[index] = keys[child];
      index = child;
    }
    keys[index] = key;
  }
}
