import { mulDims, sameDim, type Dim, type Shape } from "../graph/dim.js";
import {
  broadcastStrides,
  wgslType,
  type Expression,
  type ExpressionContext,
  type ValueView,
  type WgslType,
} from "./expression.js";
import type { GpuNumber, KernelOperand, KernelSource } from "./program.js";

/** An operand of the kernel: a value from an offset on. */
interface BoundOperand extends KernelOperand {
  readonly value: number;
  readonly offset: GpuNumber;
}

/** Returns a dimension as a number of the program. */
interface DimNumbers {
  dim(dim: Dim): GpuNumber;
}

/** Writes the WGSL of one kernel and collects its operands and parameters. */
export class KernelWriter implements ExpressionContext {
  private readonly operands: BoundOperand[] = [];
  private readonly parameters: GpuNumber[] = [];
  private readonly parameterIndices = new Map<string, number>();
  private readonly declarations: string[] = [];
  private lines: string[] = [];
  private memo = new Map<Expression, Map<string, string>>();
  private readonly bound = new Map<Expression, string>();
  private variables = 0;

  constructor(private readonly program: DimNumbers) {}

  line(code: string): void {
    this.lines.push(code);
  }

  declare(code: string): void {
    this.declarations.push(code);
  }

  /** Returns the WGSL of a parameter, as an unsigned integer. */
  parameter(value: GpuNumber): string {
    const key = JSON.stringify(value);
    const index = this.parameterIndices.get(key) ?? this.parameters.push(value) - 1;
    this.parameterIndices.set(key, index);
    return `$${index}`;
  }

  dim(dim: Dim): string {
    return typeof dim === "number" ? `${dim}u` : this.parameter(this.program.dim(dim));
  }

  /** Returns the name of an operand that the kernel reads. */
  read(view: ValueView): string {
    return this.operand(view, false);
  }

  /** Returns the name of an operand that the kernel writes and may read. */
  write(view: ValueView): string {
    return this.operand(view, true);
  }

  private operand({ value, format, offset }: ValueView, isWritten: boolean): string {
    const start = this.program.dim(offset);
    const key = JSON.stringify(start);
    const known = this.operands.find(
      (each) => each.value === value && each.isWritten === isWritten && JSON.stringify(each.offset) === key,
    );
    if (known !== undefined) return known.name;
    const name = `v${this.operands.length}`;
    this.operands.push({ name, format, isWritten, value, offset: start });
    return name;
  }

  /** Sets the code of a matrix product's element, which the kernel has computed. */
  bind(expression: Expression, code: string): void {
    this.bound.set(expression, code);
  }

  assign(type: WgslType, code: string): string {
    const name = `t${this.variables++}`;
    this.line(`let ${name}: ${type} = ${code};`);
    return name;
  }

  select(type: WgslType, cases: readonly { readonly when: string; readonly value: () => string }[]): string {
    const name = `t${this.variables++}`;
    this.line(`var ${name}: ${type};`);
    cases.forEach(({ when, value }, i) => {
      this.line(`${i === 0 ? "" : "else "}${when === "" ? "" : `if (${when}) `}{`);
      this.scoped(() => this.line(`${name} = ${value()};`));
      this.line("}");
    });
    return name;
  }

  /** Writes statements in a block, whose variables are forgotten after it. */
  scoped(write: () => void): void {
    const outer = this.memo;
    this.memo = new Map([...outer].map(([expression, codes]) => [expression, new Map(codes)]));
    write();
    this.memo = outer;
  }

  evaluate(expression: Expression, coordinates: readonly string[]): string {
    if (expression.kind === "literal" || expression.kind === "dim") return this.scalarCode(expression);
    const bound = this.bound.get(expression.kind === "reshape" ? expression.of : expression);
    if (bound !== undefined) return bound;
    const key = coordinates.join();
    const codes = this.memo.get(expression) ?? new Map<string, string>();
    const known = codes.get(key);
    if (known !== undefined) return known;
    const code = this.assign(wgslType(expression.dtype), this.code(expression, coordinates));
    codes.set(key, code);
    this.memo.set(expression, codes);
    return code;
  }

  private code(expression: Expression, coordinates: readonly string[]): string {
    switch (expression.kind) {
      case "view":
        return `${this.read(expression.view)}(${this.index(expression.view.strides, coordinates)})`;
      case "call":
        return expression.write(
          expression.args.map((arg) => this.evaluate(arg, broadcastCoordinates(coordinates, arg.shape))),
        );
      case "indexed":
        return expression.write(expression.args, coordinates, this);
      case "reshape": {
        const linear = this.assign("u32", this.linearIndex(expression.shape, coordinates));
        return this.evaluate(expression.of, this.decompose(linear, expression.of.shape));
      }
      default:
        throw new Error(`${expression.kind} has no element`);
    }
  }

  /** Returns the WGSL of a constant or of a dimension. */
  private scalarCode(expression: Extract<Expression, { kind: "literal" | "dim" }>): string {
    if (expression.kind === "dim") return `f32(bitcast<i32>(${this.dim(expression.dim)}))`;
    const { value, dtype } = expression;
    const type = wgslType(dtype);
    if (type === "bool") return value === 0 ? "false" : "true";
    if (type === "i32") return `bitcast<i32>(${Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, value)) >>> 0}u)`;
    if (Number.isFinite(Math.fround(value)) && !Object.is(value, -0)) return `f32(${Math.fround(value)})`;
    return `bitcast<f32>(${this.parameter(new Uint32Array(Float32Array.of(value).buffer)[0])})`;
  }

  index(strides: readonly Dim[], coordinates: readonly string[]): string {
    const terms = strides.flatMap((stride, axis) => {
      if (stride === 0 || coordinates[axis] === "0u") return [];
      return [stride === 1 ? coordinates[axis] : `${coordinates[axis]} * ${this.dim(stride)}`];
    });
    return terms.length === 0 ? "0u" : terms.join(" + ");
  }

  linearIndex(shape: Shape, coordinates: readonly string[]): string {
    let stride: Dim = 1;
    const strides: Dim[] = [];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      strides[axis] = stride;
      stride = mulDims(stride, shape[axis]);
    }
    return this.index(strides, coordinates);
  }

  /** Splits a linear index into coordinates of a shape. */
  decompose(linear: string, shape: Shape): string[] {
    const axes = shape.flatMap((dim, axis) => (dim === 1 ? [] : [axis]));
    const coordinates = shape.map(() => "0u");
    let rest = linear;
    axes.reverse().forEach((axis, i) => {
      if (i === axes.length - 1) {
        coordinates[axis] = rest;
        return;
      }
      const size = this.dim(shape[axis] === 0 ? 1 : shape[axis]);
      coordinates[axis] = this.assign("u32", `${rest} % ${size}`);
      rest = this.assign("u32", `${rest} / ${size}`);
    });
    return coordinates;
  }

  /**
   * Evaluates an elementwise expression at the element `linear` of `shape`, with as few divisions
   * as its strides allow.
   */
  evaluateLinear(root: Expression, shape: Shape, linear: string): string {
    const views = new Map<Expression, Dim[]>();
    const collect = (expression: Expression, within: Shape): void => {
      if (expression.kind === "view")
        views.set(expression, broadcastStrides(expression.shape, expression.view.strides, within));
      if (expression.kind === "call") expression.args.forEach((arg) => collect(arg, within));
    };
    collect(root, shape);
    const { sizes, strides } = collapseAxes(shape, [...views.values()]);
    const coordinates = this.decompose(linear, sizes);
    const stridesOf = new Map([...views.keys()].map((expression, i) => [expression, strides[i]]));
    const codes = new Map<Expression, string>();
    const evaluate = (expression: Expression): string => {
      if (expression.kind === "literal" || expression.kind === "dim") return this.scalarCode(expression);
      const known = codes.get(expression);
      if (known !== undefined) return known;
      const code =
        expression.kind === "view"
          ? `${this.read(expression.view)}(${this.index(stridesOf.get(expression)!, coordinates)})`
          : (expression as Extract<Expression, { kind: "call" }>).write(
              (expression as Extract<Expression, { kind: "call" }>).args.map(evaluate),
            );
      const name = this.assign(wgslType(expression.dtype), code);
      codes.set(expression, name);
      return name;
    };
    return evaluate(root);
  }

  /** Returns the kernel and what a step needs to run it. */
  finish(label: string, threads: number) {
    const source: KernelSource = {
      label,
      threads,
      operands: this.operands.map(({ name, format, isWritten }) => ({ name, format, isWritten })),
      parameterCount: this.parameters.length,
      declarations: this.declarations.join("\n"),
      body: this.lines.join("\n"),
    };
    return {
      source,
      values: this.operands.map(({ value }) => value),
      offsets: this.operands.map(({ offset }) => offset),
      parameters: this.parameters,
    };
  }
}

/**
 * Returns the coordinates of an argument of shape `own`, given those of the shape that it
 * broadcasts to.
 */
function broadcastCoordinates(coordinates: readonly string[], own: Shape): string[] {
  const lead = coordinates.length - own.length;
  return own.map((dim, axis) => (dim === 1 ? "0u" : coordinates[axis + lead]));
}

/** Joins neighboring axes that all strides step through as one. */
function collapseAxes(shape: Shape, allStrides: readonly (readonly Dim[])[]): { sizes: Dim[]; strides: Dim[][] } {
  const sizes: Dim[] = [];
  const strides: Dim[][] = allStrides.map(() => []);
  shape.forEach((size, axis) => {
    if (size === 1) return;
    const last = sizes.length - 1;
    const joins = last >= 0 && allStrides.every((own, i) => sameDim(strides[i][last], mulDims(size, own[axis])));
    if (joins) {
      sizes[last] = mulDims(sizes[last], size);
      allStrides.forEach((own, i) => (strides[i][last] = own[axis]));
    } else {
      sizes.push(size);
      allStrides.forEach((own, i) => strides[i].push(own[axis]));
    }
  });
  return { sizes, strides };
}
