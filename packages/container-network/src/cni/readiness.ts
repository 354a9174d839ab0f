import type { NetworkStatus } from '@keelson/container-runtime';
import { findPlugin } from './plugin-files.ts';

/** The status of a network that is not ready, with the reason that Kubernetes nodes use. */
export function unready(message: string): NetworkStatus {
  return { ready: false, reason: 'NetworkPluginNotReady', message };
}

/** Ready when the program of each of these plugins is installed. */
export async function pluginsReady(types: readonly string[], binDirs: readonly string[]): Promise<NetworkStatus> {
  try {
    for (const type of types) await findPlugin(type, binDirs);
    return { ready: true };
  } catch (error) {
    return unready(error instanceof Error ? error.message : String(error));
  }
}
