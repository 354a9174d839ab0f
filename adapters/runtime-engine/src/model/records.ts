import type { ContainerConfig, NamespaceOptions, PodSandboxConfig, SandboxId } from '@keelson/container-runtime';

const prefix = 'keelson.runtime-engine';
export const ownerLabel = `${prefix}.owner`;
const kindLabel = `${prefix}.kind`;
const sandboxLabel = `${prefix}.sandbox`;
const recordLabel = `${prefix}.record`;

/**
 * Properties of a sandbox that the engine itself does not store. The record is the value of a label, so that a list is
 * sufficient to restore all sandboxes.
 */
export interface SandboxRecord {
  readonly kind: 'sandbox';
  readonly createdAt: number;
  /** Orders records that were created in the same millisecond. */
  readonly sequence: number;
  readonly config: PodSandboxConfig;
  readonly namespaces: NamespaceOptions;
}

/** Properties of a container that the engine itself does not store. */
export interface ContainerRecord {
  readonly kind: 'container';
  readonly createdAt: number;
  readonly sequence: number;
  readonly sandboxId: SandboxId;
  readonly config: Pick<
    ContainerConfig,
    | 'metadata'
    | 'labels'
    | 'annotations'
    | 'image'
    | 'mounts'
    | 'resources'
    | 'stdin'
    | 'stdinOnce'
    | 'tty'
    | 'stopSignal'
  >;
  /** Absolute path of the log file. */
  readonly logPath?: string;
}

export function labelsOf(owner: string, record: SandboxRecord | ContainerRecord): Record<string, string> {
  return {
    [ownerLabel]: owner,
    [kindLabel]: record.kind,
    ...(record.kind === 'container' && { [sandboxLabel]: record.sandboxId }),
    [recordLabel]: JSON.stringify(record),
  };
}

type Labels = Readonly<Record<string, string>> | null | undefined;

/** The record in the labels of a container of the engine; undefined for containers of other programs. */
export function recordOf(labels: Labels): SandboxRecord | ContainerRecord | undefined {
  const text = labels?.[recordLabel];
  if (text === undefined) return undefined;
  try {
    const record = JSON.parse(text) as SandboxRecord | ContainerRecord;
    return record.kind === labels?.[kindLabel] ? record : undefined;
  } catch {
    return undefined;
  }
}

/** The `filters` parameter of lists and of the event stream. */
export function labelFilter(
  owner: string,
  narrow: { readonly kind?: 'sandbox' | 'container'; readonly sandboxId?: string } = {},
): string {
  const label = [`${ownerLabel}=${owner}`];
  if (narrow.kind !== undefined) label.push(`${kindLabel}=${narrow.kind}`);
  if (narrow.sandboxId !== undefined) label.push(`${sandboxLabel}=${narrow.sandboxId}`);
  return JSON.stringify({ label });
}
