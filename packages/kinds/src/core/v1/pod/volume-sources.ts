import type { Volume } from '../schema/index.ts';

/** Name of a source field of a volume. */
export type VolumeSourceName = Exclude<keyof Volume, 'name'>;

/** The sources of a volume. A valid volume has exactly one. */
export function sourcesOf(volume: Volume): VolumeSourceName[] {
  const sources: VolumeSourceName[] = [];
  for (const key in volume) {
    const name = key as keyof Volume;
    if (name !== 'name' && volume[name] !== undefined && volume[name] !== null) sources.push(name);
  }
  return sources;
}
