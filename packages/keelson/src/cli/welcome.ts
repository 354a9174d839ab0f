import { relative } from 'node:path';
import type { RunningServer } from './serve.ts';

/** What a user of `keelson up` needs for the first steps. Written to stderr, because programs read stdout. */
export function welcome(
  { kubeconfig }: Pick<RunningServer, 'kubeconfig'>,
  data: string,
  ingressUrl: string | undefined,
): string {
  const near = relative(process.cwd(), kubeconfig);
  const path = near.startsWith('..') ? kubeconfig : near;
  const folder = relative(process.cwd(), data);
  const option = folder === '.keelson' ? '' : ` --data ${folder.startsWith('..') ? data : folder || '.'}`;
  return [
    `Kubeconfig: ${kubeconfig}`,
    `Next:       export KUBECONFIG=${path}; kubectl get nodes`,
    ...(ingressUrl === undefined ? [] : [`Ingresses:  ${ingressUrl}`]),
    `Stop:       Ctrl+C stops the server, pods continue to run; keelson down${option} stops everything`,
    '',
  ].join('\n');
}
