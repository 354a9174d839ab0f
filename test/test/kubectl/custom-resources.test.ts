import { until } from '@keelson/test-support';
import { kubectlTest, namespaceFor } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

const definition = (sizes: readonly string[]) => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: kites.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: kites, singular: kite, kind: Kite, shortNames: [kt], categories: [all] }
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {}, scale: { specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas } }
      additionalPrinterColumns:
        - { name: Size, type: string, jsonPath: .spec.size }
        - { name: Replicas, type: integer, jsonPath: .spec.replicas }
        - { name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status' }
      selectableFields: [{ jsonPath: .spec.size }]
      schema:
        openAPIV3Schema:
          description: A kite is a toy.
          type: object
          properties:
            spec:
              type: object
              properties:
                size: { type: string, enum: [${sizes.join(', ')}], description: How large it is. }
                replicas: { type: integer, minimum: 0, default: 1 }
              x-kubernetes-validations:
                - { rule: "!has(oldSelf.size) || self.size == oldSelf.size", message: size is immutable }
            status: { type: object, x-kubernetes-preserve-unknown-fields: true }
`;
const kite = (name: string, size: string) =>
  `apiVersion: example.com/v1\nkind: Kite\nmetadata: { name: ${name} }\nspec: { size: ${size} }\n`;

test('a definition is applied, used, changed and deleted with kubectl', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, 'custom resources');
  const inNamespace = ['-n', namespace];
  const apply = (input: string) => kubectl.try(['apply', ...inNamespace, '-f', '-'], { input });
  t.is((await apply(definition(['small', 'large']))).code, 0);
  await kubectl.run(['wait', '--for=condition=Established', 'crd/kites.example.com', '--timeout=60s']);

  await until(async () => (await apply(kite('a', 'small'))).code === 0, 'kubectl knows the kind');
  t.regex(await kubectl.run(['get', 'kt', ...inNamespace]), /NAME +SIZE +REPLICAS +READY\na +small +1/);
  t.regex(await kubectl.run(['get', 'all', ...inNamespace]), /kite.example.com\/a/);
  const refused = await apply(kite('b', 'huge'));
  t.is(refused.code, 1);
  t.regex(refused.stderr, /spec.size: Unsupported value: "huge": supported values: "small", "large"/);
  t.regex((await apply(kite('a', 'large'))).stderr, /spec: Invalid value: "object": size is immutable/);

  await kubectl.run(['scale', 'kite', 'a', '--replicas=3', ...inNamespace]);
  const ready = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}';
  await kubectl.run(['patch', 'kite', 'a', '--subresource=status', '--type=merge', '-p', ready, ...inNamespace]);
  t.regex(
    await kubectl.run(['get', 'kites', '--field-selector=spec.size=small', ...inNamespace]),
    /^a +small +3 +True$/m,
  );
  t.regex(
    await kubectl.run(['explain', 'kites.spec.size']),
    /ENUM:\n {4}small\n {4}large|enum: small, large[\s\S]*How large it is/,
  );

  const watch = kubectl.try(['get', 'kt', '-w', '--request-timeout=4s', '--no-headers', ...inNamespace]);
  t.is((await apply(definition(['small', 'large', 'huge']))).code, 0);
  await until(async () => (await apply(kite('b', 'huge'))).code === 0, 'the changed schema is in effect');
  t.regex((await watch).stdout, /^b +huge +1/m);

  await kubectl.run(['delete', 'crd', 'kites.example.com', '--timeout=60s']);
  const gone = await kubectl.try(['get', 'kites', ...inNamespace]);
  t.is(gone.code, 1);
});
