import { StoryError } from "./instruction-budget.js";

const MAX_VALUES = 1 << 15;
const MAX_FRAMES = 1 << 12;

/** An active routine. */
interface Frame {
  readonly returnAddress: number;
  /** Variable for the result, -1 for none. */
  readonly store: number;
  readonly firstLocal: number;
  readonly stackBase: number;
  readonly argumentCount: number;
}

const MAIN: Frame = { returnAddress: 0, store: -1, firstLocal: 0, stackBase: 0, argumentCount: 0 };

/** Active routines with their local variables and evaluation stacks (Standard, section 6). */
export class CallStack {
  private readonly values = new Uint16Array(MAX_VALUES);
  private readonly callers: Frame[] = [];
  /** The running routine. */
  frame = MAIN;
  private top = 0;

  push(value: number): void {
    if (this.top >= MAX_VALUES) throw new StoryError("its stack is full");
    this.values[this.top++] = value;
  }

  pop(): number {
    if (this.top <= this.frame.stackBase) throw new StoryError("it takes a value from an empty stack");
    return this.values[--this.top];
  }

  peek(): number {
    return this.values[this.top - 1];
  }

  local(index: number): number {
    return this.values[this.frame.firstLocal + index];
  }

  setLocal(index: number, value: number): void {
    this.values[this.frame.firstLocal + index] = value;
  }

  /** Enters a routine with zeroed locals. */
  pushFrame(locals: number, argumentCount: number, returnAddress: number, store: number): void {
    if (this.depth >= MAX_FRAMES || this.top + locals > MAX_VALUES) throw new StoryError("its calls go too deep");
    this.callers.push(this.frame);
    const firstLocal = this.top;
    this.top += locals;
    for (let i = firstLocal; i < this.top; i++) this.values[i] = 0;
    this.frame = { returnAddress, store, firstLocal, stackBase: this.top, argumentCount };
  }

  /** Leaves the running routine. Returns the address at which its caller continues. */
  popFrame(): number {
    const { returnAddress, firstLocal } = this.frame;
    const caller = this.callers.pop();
    if (caller === undefined) throw new StoryError("it returns from its main routine");
    this.top = firstLocal;
    this.frame = caller;
    return returnAddress;
  }

  /** Number of callers: the result of catch. */
  get depth(): number {
    return this.callers.length;
  }

  /** Executes the throw instruction: unwinds to the routine at a depth. */
  unwind(depth: number): void {
    if (depth > this.depth) throw new StoryError("it throws to a routine that has ended");
    while (this.depth > depth) this.popFrame();
  }

  clear(): void {
    this.callers.length = this.top = 0;
    this.frame = MAIN;
  }
}
