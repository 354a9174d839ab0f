/**
 * Whose namespace is used.
 *
 * - `pod`: one that all containers of the sandbox share.
 * - `container`: one of the container's own.
 * - `node`: that of the machine.
 */
export type NamespaceMode = 'pod' | 'container' | 'node';

/** Which namespaces a pod or container has of its own. */
export interface NamespaceOptions {
  readonly network: 'pod' | 'node';
  readonly pid: NamespaceMode;
  readonly ipc: 'pod' | 'node';
}
