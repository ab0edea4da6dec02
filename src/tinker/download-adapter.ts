import { fs } from "#platform";
import { LlamaGymError } from "../core/errors.js";
import { addChecksums } from "../core/files/checksums.js";
import { RemoteModel } from "./client/remote-model.js";
import { ServiceError } from "./client/service-connection.js";
import { ServiceSession } from "./client/service-session.js";
import { readApiKey, type TinkerModelOptions } from "./open-tinker-model.js";
import { readServiceModel } from "./service-model.js";
import { externalWeightsUrls } from "./wire/responses.js";

const FILES = ["adapter_config.json", "adapter_model.safetensors"];
const EXTERNAL_PATH = /^tinker:\/\/(?<run>[^/]+)\/(?<name>external_weights\/[^/]+)$/u;

/**
 * Downloads the adapter of a trained model on a service, in PEFT's form, and returns the name of
 * its base model.
 * @throws as `openSavedTinkerModel`, SERVICE_FAILED for a service that gives no files,
 * FILE_WRITE_FAILED.
 */
export async function downloadAdapter(
  folder: string,
  target: string,
  { apiKey = readApiKey(), maxWaitSeconds, onWarning }: Partial<TinkerModelOptions> = {},
): Promise<string> {
  const { baseUrl, statePath, form } = await readServiceModel(folder);
  const session = await ServiceSession.open({ baseUrl, apiKey, maxWaitSeconds, onWarning });
  try {
    const { baseModel } = form;
    const model = await RemoteModel.load(session, 0, { path: statePath, form, optimizer: false });
    const saved = EXTERNAL_PATH.exec(await model.saveExternal(`export-${crypto.randomUUID().slice(0, 13)}`))?.groups;
    if (saved === undefined) throw new ServiceError(`${baseUrl} saved the adapter under an unknown path.`, undefined);
    const path = `training_runs/${encodeURIComponent(saved.run)}/checkpoints/${saved.name}/external_weights_urls`;
    const { urls } = await session.call({ path, method: "GET" }, externalWeightsUrls);
    await fs.makeFolder(target);
    for (const name of FILES) {
      if (urls[name] === undefined) throw new ServiceError(`${baseUrl} does not give the file ${name}.`, undefined);
      await download(
        urls[name],
        fs.join(target, name),
        new URL(urls[name]).origin === new URL(baseUrl).origin ? apiKey : undefined,
      );
    }
    await addChecksums(target, FILES);
    return baseModel;
  } finally {
    await session.close();
  }
}

/** Downloads a file; the key is for the service alone, not for a storage that it names. */
async function download(url: string, path: string, apiKey: string | undefined): Promise<void> {
  const response = await fetch(url, { headers: apiKey === undefined ? {} : { "x-api-key": apiKey } });
  if (!response.ok || response.body === null)
    throw new ServiceError(`The adapter was not downloaded: HTTP ${response.status}.`, response.status);
  const file = await fs.open(path, "create").catch((error: unknown) => {
    throw new LlamaGymError("FILE_WRITE_FAILED", `Could not create ${path}: ${String(error)}`, { cause: error });
  });
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) await file.write(chunk);
  } finally {
    await file.close();
  }
}
