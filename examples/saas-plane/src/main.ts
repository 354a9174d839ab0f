import { createControlPlane, loadCredentials, writeKubeconfig } from 'keelson';
import { allowSignUp, signUp } from './sign-up.ts';
import { Tenant } from './tenant.ts';
import { tenantController } from './tenant-controller.ts';

// The users: `token,name,uid` per line. A product would use OpenID Connect, see docs/how-to/authenticate-users.md.
const [tokenFile = 'users.csv', data = '.saas'] = process.argv.slice(2);
const plane = await createControlPlane({
  storage: `lmdb:${data}/store`,
  data,
  kinds: [Tenant],
  controllers: ['api', tenantController],
  authentication: { tokenFile },
});
await allowSignUp(plane);
const credentials = await loadCredentials(data, '127.0.0.1', Date.now());
const { url } = await plane.listen({ address: { host: '127.0.0.1', port: 6443 }, credentials, routes: [signUp] });
const kubeconfig = await writeKubeconfig(data, { url, credentials });
console.log(`serving on ${url}; administrators use ${kubeconfig}`);
