import { createHttpClient } from '@keelson/client';
import { ControllerManager } from '@keelson/controller-kit';
import { GarbageCollector, namespaceController } from '@keelson/controllers';
import { isStatusError } from '@keelson/core';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { ConfigMap, Namespace, Secret } from '@keelson/kinds';
import { eventually, startTestPlane } from '@keelson/testing';
import test from 'ava';

test('controllers work over HTTP as they do in process', async (t) => {
  const plane = await startTestPlane({ controllers: false });
  t.teardown(() => plane.close());
  const { url } = await plane.listen();
  const client = createHttpClient({ server: url });
  const options = { client, clock: systemClock, logger: silentLogger, metrics: noMetrics };
  const controllers = [
    new GarbageCollector(options),
    new ControllerManager({ ...options, controllers: [namespaceController(client, systemClock)] }),
  ];
  t.teardown(async () => {
    for (const controller of controllers) await controller.stop();
    client.close();
  });
  for (const controller of controllers) await controller.start();

  await client.resource(Namespace).create({ metadata: { name: 'shop' } } as never);
  const maps = client.resource(ConfigMap).namespace('shop');
  const secrets = client.resource(Secret).namespace('shop');
  const owner = await maps.create({ metadata: { name: 'owner' } } as never);
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata?.uid ?? '' }];
  await secrets.create({ metadata: { name: 'owned', ownerReferences } } as never);
  await secrets.create({ metadata: { name: 'free' } } as never);
  await maps.delete('owner');
  const gone = (call: () => Promise<unknown>) => () =>
    call().then(
      () => false,
      (error: unknown) => isStatusError(error, 'NotFound'),
    );
  await eventually(gone(() => secrets.get('owned')));
  t.is((await secrets.get('free')).metadata?.name, 'free');
  await client.resource(Namespace).delete('shop');
  await eventually(gone(() => client.resource(Namespace).get('shop')));
  t.is((await plane.client(Secret).list({ fieldSelector: 'metadata.namespace=shop' })).items.length, 0);
});
