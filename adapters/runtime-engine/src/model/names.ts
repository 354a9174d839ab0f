import { createHash } from 'node:crypto';
import type { ContainerMetadata, SandboxId, SandboxMetadata } from '@keelson/container-runtime';

const maxPartLength = 40;

/**
 * The name of a sandbox at the engine: readable parts, and a digest of the complete identity. Equal identities have
 * equal names, so the engine itself rejects a duplicate, also between processes.
 */
export function sandboxName(owner: string, { name, namespace, uid, attempt }: SandboxMetadata): string {
  return join(['k8s', 'POD', name, namespace, String(attempt)], [owner, namespace, name, uid, String(attempt)]);
}

export function containerName(
  sandbox: SandboxMetadata,
  sandboxId: SandboxId,
  { name, attempt }: ContainerMetadata,
): string {
  return join(['k8s', name, sandbox.name, sandbox.namespace, String(attempt)], [sandboxId, name, String(attempt)]);
}

function join(readable: readonly string[], identity: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 24);
  const parts = readable.map((part) => part.replaceAll(/[^a-zA-Z0-9.-]/g, '-').slice(0, maxPartLength));
  return `${parts.join('_')}_${digest}`;
}
