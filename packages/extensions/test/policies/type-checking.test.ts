import { readFileSync } from 'node:fs';
import { builtinKinds, type policiesV1 } from '@keelson/kinds';
import test from 'ava';
import { typeWarnings } from '../../src/policies/type-checking.ts';

// Recorded from the TypeChecker of k8s.io/apiserver 0.34.2 with the published OpenAPI documents of Kubernetes 1.34.2.
const file = new URL('../../../test/policies/fixtures/type-warnings.jsonl', import.meta.url);
const mapped = [
  'ConfigMap Endpoints LimitRange Namespace Node PersistentVolumeClaim Pod ReplicationController Secret Service',
  'ServiceAccount CronJob DaemonSet Deployment Job ReplicaSet StatefulSet',
]
  .join(' ')
  .split(' ');
const kinds = builtinKinds.filter(({ version, kind }) => version === 'v1' && mapped.includes(kind));

interface Recorded {
  readonly spec: policiesV1.ValidatingAdmissionPolicySpec;
  readonly warnings: readonly policiesV1.ExpressionWarning[];
}

for (const [i, line] of readFileSync(file, 'utf8').trim().split('\n').entries()) {
  const { spec, warnings } = JSON.parse(line) as Recorded;
  test(`type warnings are those of Kubernetes: policy ${i}, ${spec.validations?.[0]?.expression ?? 'empty'}`, (t) => {
    const policy = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy', spec } as const;
    t.deepEqual(typeWarnings(policy, kinds), [...warnings]);
  });
}
