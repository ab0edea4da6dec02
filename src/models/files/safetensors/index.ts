export { openWeightFolder, readWeightMap, WEIGHTS_INDEX_NAME, WEIGHTS_NAME } from "./open-weight-folder.js";
export { SafetensorsFile } from "./safetensors-file.js";
export { saveWeightFolder } from "./save-weight-folder.js";
export { writeSafetensors, type SavedDtype, type TensorToSave } from "./write-safetensors.js";
