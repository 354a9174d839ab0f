import type { RuntimeCapabilities } from '@keelson/container-runtime';
import { criCapabilities } from './capabilities.ts';
import { isRecord, recordOf } from './convert/notes.ts';

/**
 * In the information of a verbose `Status`, where the service of this package says what its engine is: CRI has no call
 * for it.
 */
export const engineKey = 'keelson.cri/engine';

const rootFilesystems: readonly unknown[] = [
  'image',
  'chroot',
  'host',
] satisfies RuntimeCapabilities['rootFilesystem'][];

/** What a client may know of the engine behind a service. */
export interface EngineInfo {
  readonly name: string;
  readonly capabilities: RuntimeCapabilities;
}

export function formatEngineInfo({ name, capabilities }: EngineInfo): string {
  return JSON.stringify({ name, capabilities });
}

/** Undefined for daemons that say nothing of it. */
export function parseEngineInfo(info: Readonly<Record<string, string>> | undefined): EngineInfo | undefined {
  const { name, capabilities } = recordOf(info?.[engineKey]);
  if (typeof name !== 'string' || !isRecord(capabilities)) return undefined;
  const entries = Object.entries(criCapabilities({ events: true })).map(([key, byProtocol]) => {
    const said = capabilities[key];
    if (typeof byProtocol === 'boolean') return [key, said === true];
    return [key, rootFilesystems.includes(said) ? said : byProtocol];
  });
  return { name, capabilities: Object.fromEntries(entries) as RuntimeCapabilities };
}
