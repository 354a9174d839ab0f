import type { PodSpec } from '@keelson/kinds';
import test from 'ava';
import { detailsOf, evaluate } from '../../src/admission/pod-security/evaluate.ts';
import { podView } from '../../src/admission/pod-security/pod-view.ts';
import { policyOf } from '../../src/admission/pod-security/policy.ts';
import { podSecurityCases } from './pod-security-cases.ts';

const prefix = 'pod-security.kubernetes.io/';

for (const [check, cases] of Object.entries(podSecurityCases)) {
  test(`pods conform to levels and violate them with the messages of Kubernetes: ${check}`, (t) => {
    for (const [level, spec, violations, annotations] of cases) {
      const [name = '', version = ''] = level.split(':');
      const { enforce } = policyOf({ [`${prefix}enforce`]: name, [`${prefix}enforce-version`]: version });
      t.is(enforce.text, level);
      const found = evaluate(enforce, podView(annotations, spec as PodSpec));
      t.is(detailsOf(found), violations, `${level} ${JSON.stringify(spec)}`);
    }
  });
}
