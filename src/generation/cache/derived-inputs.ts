import { compile, type Node } from "../../engine/graph/index.js";
import type { BufferView, Session, WorkerRequest } from "../../engine/runtime/index.js";
import type { CausalLM } from "../../models/index.js";

/** Buffers of a version of the model, with or without its adapter. */
interface DerivedValues {
  readonly views: Readonly<Record<string, BufferView>>;
  /** Version of the parameters from which they were computed; undefined before the first. */
  version: number | undefined;
}

/**
 * Inputs of a decode graph that depend on the parameters alone, such as DoRA's factors: computed
 * once after each change of the parameters, not in each step.
 */
export class DerivedInputs {
  private readonly values = new Map<CausalLM, Map<boolean, DerivedValues>>();

  private constructor(private readonly session: Session) {}

  static async create(model: CausalLM, values: ReadonlyMap<string, Node>): Promise<DerivedInputs> {
    const graph = compile(Object.fromEntries(values));
    return new DerivedInputs(await model.createSession(graph, { packWeights: false }));
  }

  /** Returns the buffers of a version of the model. */
  views(model: CausalLM, adapter: boolean): Readonly<Record<string, BufferView>> {
    return this.get(model, adapter).views;
  }

  /** Returns the request that computes the values, if the parameters have changed since. */
  update(model: CausalLM, adapter: boolean): readonly WorkerRequest[] {
    const values = this.get(model, adapter);
    if (values.version === model.parametersVersion) return [];
    values.version = model.parametersVersion;
    const parameters = model.getParameterViews(this.session.graph, { adapter });
    return [this.session.request(parameters, { fetches: values.views })];
  }

  /** Makes the next update compute the values again: a failed request may not have. */
  invalidate(): void {
    for (const byAdapter of this.values.values()) for (const values of byAdapter.values()) values.version = undefined;
  }

  /** Frees the buffers of a version of the model. */
  forget(model: CausalLM): void {
    for (const { views } of this.values.get(model)?.values() ?? [])
      for (const view of Object.values(views)) model.runtime.free(view);
    this.values.delete(model);
  }

  async release(): Promise<void> {
    for (const model of this.values.keys()) this.forget(model);
    await this.session.release();
  }

  private get(model: CausalLM, adapter: boolean): DerivedValues {
    let byAdapter = this.values.get(model);
    if (byAdapter === undefined) this.values.set(model, (byAdapter = new Map()));
    let values = byAdapter.get(adapter);
    if (values === undefined) {
      const views = this.session.graph.outputs.map(
        ({ name, shape }) => [name, model.runtime.allocate("float32", shape as readonly number[])] as const,
      );
      byAdapter.set(adapter, (values = { views: Object.fromEntries(views), version: undefined }));
    }
    return values;
  }
}
