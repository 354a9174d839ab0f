/**
 * Owner of a Linux namespace that a container uses.
 *
 * - `pod`: all containers of the sandbox share a namespace.
 * - `container`: the container has its own namespace.
 * - `node`: the container uses the namespace of the machine.
 */
export type NamespaceMode = 'pod' | 'container' | 'node';

/** The owners of the namespaces that a pod or container uses. */
export interface NamespaceOptions {
  readonly network: 'pod' | 'node';
  readonly pid: NamespaceMode;
  readonly ipc: 'pod' | 'node';
}
