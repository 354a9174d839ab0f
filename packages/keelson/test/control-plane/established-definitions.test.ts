import { until } from '@keelson/test-support';
import test from 'ava';
import { createControlPlane } from '../../src/index.ts';

interface Definition {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

test('definitions that are created while others are being established are all established', async (t) => {
  const plane = await createControlPlane({ storage: 'memory:' });
  t.teardown(() => plane.close());
  const { url } = await plane.listen();
  const definitions = `${url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`;
  const create = async (plural: string) => {
    const schema = { openAPIV3Schema: { type: 'object' } };
    const names = { plural, kind: plural.toUpperCase() };
    const versions = [{ name: 'v1', served: true, storage: true, schema }];
    const body = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: `${plural}.example.com` },
      spec: { group: 'example.com', scope: 'Namespaced', names, versions },
    };
    const headers = { 'Content-Type': 'application/json' };
    const { status } = await fetch(definitions, { method: 'POST', body: JSON.stringify(body), headers });
    t.is(status, 201);
  };
  // The second of a pair arrives at various moments of the work on the first.
  for (let pair = 0; pair < 30; pair += 1) {
    const first = create(`a${pair}`);
    for (let turn = 0; turn < pair % 10; turn += 1) await new Promise(setImmediate);
    await Promise.all([first, create(`b${pair}`)]);
    await until(async () => {
      const { items } = (await (await fetch(definitions)).json()) as { items: readonly Definition[] };
      return items.every(({ status }) =>
        status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True'),
      );
    }, 'both are established');
  }
});
