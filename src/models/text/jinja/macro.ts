import { marked } from "./content-marks.js";
import { PythonDict } from "./dict.js";
import { type CallArguments, Markup, PythonObject, PythonTuple, Undefined, type Value } from "./values.js";

export interface MacroDefinition {
  readonly name: string | null;
  readonly parameters: readonly string[];
  readonly readsCaller: boolean;
  readonly readsKwargs: boolean;
  readonly readsVarargs: boolean;
  /** Renders the body with the values of parameters; one that was not passed is undefined. */
  render(values: ReadonlyMap<string, Value | undefined>): string;
  /** Whether the text is Markup. */
  autoescape(): boolean;
}

/** A macro or the body of a call block, called as jinja2's Macro. */
export class MacroFunction extends PythonObject {
  readonly type = "Macro";

  constructor(private readonly definition: MacroDefinition) {
    super();
  }

  override readonly call = (args: CallArguments): Value => {
    const text = this.definition.render(this.bind(args));
    return this.definition.autoescape() ? new Markup(text) : text;
  };

  private bind({ positional, named }: CallArguments): Map<string, Value | undefined> {
    const { name, parameters, readsCaller, readsKwargs, readsVarargs } = this.definition;
    const rest = new Map(named);
    const values = new Map<string, Value | undefined>();
    parameters.forEach((parameter, i) => {
      values.set(parameter, i < positional.length ? positional[i] : rest.get(parameter));
      if (i >= positional.length) rest.delete(parameter);
    });
    if (readsCaller && !parameters.includes("caller")) {
      values.set("caller", rest.get("caller") ?? new Undefined("No caller defined"));
      rest.delete("caller");
    }
    const title = `macro ${name === null ? "None" : `'${name}'`}`;
    if (readsKwargs)
      values.set("kwargs", new PythonDict(Array.from(rest, ([key, value]) => [marked(key), value] as const)));
    else if (rest.has("caller"))
      throw new Error(`${title} was invoked with two values for the special caller argument`);
    else if (rest.size > 0) throw new Error(`${title} takes no keyword argument '${Array.from(rest.keys())[0]}'`);
    if (readsVarargs) values.set("varargs", new PythonTuple(positional.slice(parameters.length)));
    else if (positional.length > parameters.length)
      throw new Error(`${title} takes not more than ${parameters.length} argument(s)`);
    return values;
  }

  override getAttribute(name: string): Value | undefined {
    const { name: title, parameters, readsCaller, readsKwargs, readsVarargs } = this.definition;
    switch (name) {
      case "name":
        return title;
      case "arguments":
        return new PythonTuple(parameters);
      case "catch_kwargs":
        return readsKwargs;
      case "catch_varargs":
        return readsVarargs;
      case "caller":
        return readsCaller;
      case "explicit_caller":
        return parameters.includes("caller");
      case "__repr__":
        return title === null ? "<Macro anonymous>" : `<Macro '${title}'>`;
      default:
        return undefined;
    }
  }
}
