import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@keelson/core/runtime';
import type { HttpClientOptions } from '../http/http-client-options.ts';
import { KubeconfigError } from './kubeconfig-error.ts';
import { tokenFromFile } from './token-file.ts';

/** Directory of the service account's files in a pod. */
export const serviceAccountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Where {@link inClusterAccess} finds the server and the credentials. */
export interface InClusterOptions {
  /** Environment with `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory with the files of the service account. Default {@link serviceAccountDirectory}. */
  readonly directory?: string;
  readonly clock?: Clock;
}

/**
 * Options for a program that runs in a pod: the address from the environment; certificate, token and namespace from the
 * files of the service account. The token is read again every minute.
 *
 * @throws KubeconfigError outside a pod
 */
export async function inClusterAccess(
  options: InClusterOptions,
): Promise<{ readonly options: HttpClientOptions; readonly namespace: string }> {
  const { env, directory = serviceAccountDirectory, clock } = options;
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '';
  if (host === '' || port === '') {
    throw new KubeconfigError('not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
  }
  const read = async (name: string): Promise<string> => {
    try {
      return await readFile(join(directory, name), 'utf8');
    } catch (cause) {
      throw new KubeconfigError(`cannot read the service account's ${name} in ${directory}`, cause);
    }
  };
  const [ca, namespace] = await Promise.all([read('ca.crt'), read('namespace'), read('token')]);
  const shownHost = host.includes(':') ? `[${host}]` : host;
  return {
    options: {
      server: `https://${shownHost}:${port}`,
      ca,
      tokenProvider: tokenFromFile(join(directory, 'token'), clock),
      ...(clock === undefined ? {} : { clock }),
    },
    namespace: namespace.trim(),
  };
}
