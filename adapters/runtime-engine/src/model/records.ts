import type { ContainerConfig, NamespaceOptions, PodSandboxConfig, SandboxId } from '@keelson/container-runtime';

const prefix = 'keelson.runtime-engine';
export const ownerLabel = `${prefix}.owner`;
const kindLabel = `${prefix}.kind`;
const sandboxLabel = `${prefix}.sandbox`;
const recordLabel = `${prefix}.record`;

/**
 * What a sandbox is, as far as the engine does not know it by itself. It is a label, so lists are enough to rebuild
 * everything.
 */
export interface SandboxRecord {
  readonly kind: 'sandbox';
  readonly createdAt: number;
  /** Orders what was made in the same millisecond. */
  readonly sequence: number;
  readonly config: PodSandboxConfig;
  readonly namespaces: NamespaceOptions;
}

/** The same of a container. */
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
  /** Absolute. */
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

/** The record in the labels of a container of the engine; undefined when it is not one of ours. */
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

/** Filters of a list or of the event stream, as the query wants them. */
export function labelFilter(
  owner: string,
  narrow: { readonly kind?: 'sandbox' | 'container'; readonly sandboxId?: string } = {},
): string {
  const label = [`${ownerLabel}=${owner}`];
  if (narrow.kind !== undefined) label.push(`${kindLabel}=${narrow.kind}`);
  if (narrow.sandboxId !== undefined) label.push(`${sandboxLabel}=${narrow.sandboxId}`);
  return JSON.stringify({ label });
}
