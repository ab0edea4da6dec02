import { StoryError } from "./instruction-budget.js";

const MAX_VALUES = 1 << 15;
const MAX_FRAMES = 1 << 12;
const FRAME_SIZE = 4;

/** Active routines with their local variables and evaluation stacks (Standard, section 6). */
export class CallStack {
  private readonly values = new Uint16Array(MAX_VALUES);
  /** Per caller: return address, result variable, first local, stack base and argument count. */
  private readonly frames = new Int32Array(MAX_FRAMES * FRAME_SIZE);
  private depth = 0;
  private top = 0;
  private locals = 0;
  private stackBase = 0;
  /** Argument count of the running routine. */
  argumentCount = 0;

  push(value: number): void {
    if (this.top >= MAX_VALUES) throw new StoryError("its stack is full");
    this.values[this.top++] = value;
  }

  pop(): number {
    if (this.top <= this.stackBase) throw new StoryError("it takes a value from an empty stack");
    return this.values[--this.top];
  }

  peek(): number {
    return this.values[this.top - 1];
  }

  local(index: number): number {
    return this.values[this.locals + index];
  }

  setLocal(index: number, value: number): void {
    this.values[this.locals + index] = value;
  }

  /** Enters a routine with zeroed locals; the caller continues at `next`. */
  pushFrame(locals: number, argumentCount: number, returnAddress: number, store: number): void {
    if (this.depth >= MAX_FRAMES || this.top + locals > MAX_VALUES) throw new StoryError("its calls go too deep");
    const frame = this.depth++ * FRAME_SIZE;
    this.frames[frame] = returnAddress;
    this.frames[frame + 1] = ((this.argumentCount & 0xff) << 16) | (store & 0xffff);
    this.frames[frame + 2] = this.locals;
    this.frames[frame + 3] = this.stackBase;
    this.locals = this.top;
    this.stackBase = this.top + locals;
    for (let i = this.top; i < this.stackBase; i++) this.values[i] = 0;
    this.top = this.stackBase;
    this.argumentCount = argumentCount;
  }

  /** Variable for the running routine's result, -1 for none. */
  get resultVariable(): number {
    return this.depth === 0 ? -1 : (this.frames[(this.depth - 1) * FRAME_SIZE + 1] << 16) >> 16;
  }

  /** Leaves the running routine. Returns the address at which its caller continues. */
  popFrame(): number {
    if (this.depth === 0) throw new StoryError("it returns from its main routine");
    const frame = --this.depth * FRAME_SIZE;
    this.top = this.locals;
    this.locals = this.frames[frame + 2];
    this.stackBase = this.frames[frame + 3];
    this.argumentCount = this.frames[frame + 1] >>> 16;
    return this.frames[frame];
  }

  /** Executes the catch instruction: returns a mark of the running routine. */
  get mark(): number {
    return this.depth;
  }

  /** Executes the throw instruction: unwinds to the marked routine. */
  unwind(mark: number): void {
    if (mark > this.depth) throw new StoryError("it throws to a routine that has ended");
    while (this.depth > mark) this.popFrame();
  }

  clear(): void {
    this.depth = this.top = this.locals = this.stackBase = this.argumentCount = 0;
  }
}
