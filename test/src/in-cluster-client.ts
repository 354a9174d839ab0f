import { readFile } from 'node:fs/promises';
import { AuthenticationV1Api, CoreV1Api, KubeConfig } from '@kubernetes/client-node';

/*
 * Runs in a pod. Prints its user as authenticated by the server, and then the names of the config maps of its
 * namespace, or the reason why it is not permitted to read them.
 */

const config = new KubeConfig();
config.loadFromCluster();
const namespace = await readFile('/var/run/secrets/kubernetes.io/serviceaccount/namespace', 'utf8');
const authentication = config.makeApiClient(AuthenticationV1Api);
const core = config.makeApiClient(CoreV1Api);

const { status } = await authentication.createSelfSubjectReview({ body: {} });
console.log(status?.userInfo?.username);
try {
  const { items } = await core.listNamespacedConfigMap({ namespace });
  console.log(items.map(({ metadata }) => metadata?.name).join(' '));
} catch (error) {
  const { message } = JSON.parse((error as { body: string }).body) as { message: string };
  console.log(message);
}
