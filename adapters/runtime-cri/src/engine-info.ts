import type { RuntimeCapabilities } from '@keelson/container-runtime';
import { isJsonObject } from '@keelson/core/internal';
import { criCapabilities } from './capabilities.ts';
import { recordOf } from './convert/own-annotations.ts';

/**
 * Key in the `info` of a verbose `Status` under which the service of this package describes its engine; CRI has no call
 * for this.
 */
export const engineKey = 'keelson.cri/engine';

const rootFilesystems: readonly unknown[] = [
  'image',
  'chroot',
  'host',
] satisfies RuntimeCapabilities['rootFilesystem'][];

/** Description of the engine behind a service. */
export interface EngineInfo {
  readonly name: string;
  readonly capabilities: RuntimeCapabilities;
}

export function formatEngineInfo({ name, capabilities }: EngineInfo): string {
  return JSON.stringify({ name, capabilities });
}

/** Reads the description of the engine from a verbose status; undefined when the daemon sent none. */
export function parseEngineInfo(info: Readonly<Record<string, string>> | undefined): EngineInfo | undefined {
  const { name, capabilities } = recordOf(info?.[engineKey]);
  if (typeof name !== 'string' || !isJsonObject(capabilities)) return undefined;
  const entries = Object.entries(criCapabilities({ events: true })).map(([key, byProtocol]) => {
    const reported = capabilities[key];
    if (typeof byProtocol === 'boolean') return [key, reported === true];
    return [key, rootFilesystems.includes(reported) ? reported : byProtocol];
  });
  return { name, capabilities: Object.fromEntries(entries) as RuntimeCapabilities };
}
