export { openWeightFolder, readWeightMap, WEIGHTS_INDEX_NAME, WEIGHTS_NAME } from "./folder.js";
export { SafetensorsFile } from "./reader.js";
export { saveWeightFolder } from "./save-folder.js";
export { writeSafetensors, type SavedDtype, type TensorToSave } from "./writer.js";
