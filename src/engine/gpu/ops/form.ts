import type { Node } from "../../graph/node.js";
import type { Expression } from "../expression.js";
import type { ProgramBuilder } from "../program-builder.js";

interface FormContext<A> {
  readonly program: ProgramBuilder;
  readonly node: Node<A>;
  /** Expressions of the inputs; for `output`, of all outputs of its operation. */
  readonly inputs: readonly Expression[];
  readonly attributes: A;
  /** Whether output `index` is read. An unread output may be any expression. */
  readonly isRead: (index: number) => boolean;
}

/** Form of an operation on the GPU: returns the expressions of its outputs. */
export type GpuForm<A> = (context: FormContext<A>) => Expression | readonly Expression[];
