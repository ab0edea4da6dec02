import { getOrCreatePromise } from "../../core/promise-cache.js";
import type { LanguageModel } from "../../generation/index.js";
import type { CausalLM } from "../../models/index.js";
import { getPeftModel } from "../../models/adapters/index.js";
import { SERVICE_LORA_ALPHA } from "../../tinker/index.js";
import { RequestError } from "../server/request-error.js";
import type { AdapterForm } from "./checkpoint-store.js";
import { selectTargets } from "./lora-targets.js";
import { ModelForm } from "./model-form.js";

/** The model that clients adapt: its names, and what adapters of one form share. */
export class BaseModel {
  /** The model without an adapter. */
  readonly form: ModelForm;
  private readonly forms = new Map<string, Promise<ModelForm>>();

  constructor(
    readonly model: LanguageModel,
    /** Name of the model in requests. */
    readonly name: string,
    /** Further names of the model, such as the path of its folder. */
    private readonly aliases: readonly string[] = [],
  ) {
    this.form = new ModelForm(model.causalLM);
  }

  /** Checks the name of a base model in a request. @throws RequestError 400 for another one. */
  checkName(name: string | null | undefined): void {
    if (name == null || name === this.name || this.aliases.includes(name)) return;
    throw new RequestError(400, `There is no model ${JSON.stringify(name.slice(0, 200))} here. Use ${this.name}.`);
  }

  /** Creates the model with a new adapter. */
  async createAdapter(form: AdapterForm, seed: number): Promise<CausalLM> {
    const { causalLM } = this.model;
    return getPeftModel(causalLM, {
      r: form.rank,
      loraAlpha: SERVICE_LORA_ALPHA,
      targetModules: selectTargets(causalLM.config, form),
      seed: Math.abs(seed),
    });
  }

  /** Returns what adapters of a form share. */
  async getForm(form: AdapterForm): Promise<ModelForm> {
    return getOrCreatePromise(
      this.forms,
      JSON.stringify([form.rank, form.train_attn, form.train_mlp, form.train_unembed]),
      async () => new ModelForm(await this.createAdapter(form, 0)),
    );
  }
}
