import type { Volume } from '../schema/index.ts';

/** Name of a member of a volume that says where its content comes from. */
export type VolumeSourceName = Exclude<keyof Volume, 'name'>;

/** The sources a volume names; a valid one names exactly one. */
export function sourcesOf(volume: Volume): VolumeSourceName[] {
  const sources: VolumeSourceName[] = [];
  for (const key in volume) {
    const name = key as keyof Volume;
    if (name !== 'name' && volume[name] !== undefined && volume[name] !== null) sources.push(name);
  }
  return sources;
}
