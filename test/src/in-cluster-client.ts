import { readFile, rename, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { AuthenticationV1Api, CoreV1Api, KubeConfig } from '@kubernetes/client-node';

/*
 * Runs in a pod, and asks again and again, because its start needs a hundred times the processor time of a request. It
 * keeps two files up to date: in `answers` its user as authenticated by the server, followed by the names of the config
 * maps of its namespace, or the reason why it is not permitted to read them; in `token` its token.
 */

const [answers = '', token = ''] = process.argv.slice(2);
const directory = '/var/run/secrets/kubernetes.io/serviceaccount';
const namespace = await readFile(`${directory}/namespace`, 'utf8');

async function ask(): Promise<string> {
  const config = new KubeConfig();
  config.loadFromCluster();
  const { status } = await config.makeApiClient(AuthenticationV1Api).createSelfSubjectReview({ body: {} });
  const second = await config
    .makeApiClient(CoreV1Api)
    .listNamespacedConfigMap({ namespace })
    .then(({ items }) => items.map(({ metadata }) => metadata?.name).join(' '))
    .catch(({ body }: { body: string }) => (JSON.parse(body) as { message: string }).message);
  return `${status?.userInfo?.username}\n${second}\n`;
}

async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

for (;;) {
  await replace(token, await readFile(`${directory}/token`, 'utf8'));
  await replace(answers, await ask().catch(String));
  await setTimeout(200);
}
