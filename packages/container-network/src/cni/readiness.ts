import type { NetworkStatus } from '@keelson/container-runtime';
import { findPlugin } from './plugin-files.ts';

/** Not ready, with the reason that nodes of this field give. */
export function unready(message: string): NetworkStatus {
  return { ready: false, reason: 'NetworkPluginNotReady', message };
}

/** Ready when the program of each of these plugins is there. */
export async function pluginsReady(types: readonly string[], binDirs: readonly string[]): Promise<NetworkStatus> {
  try {
    for (const type of types) await findPlugin(type, binDirs);
    return { ready: true };
  } catch (error) {
    return unready(error instanceof Error ? error.message : String(error));
  }
}
