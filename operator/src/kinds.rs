//! The kinds of objects: what each observes, plans and does; and the registry that all code for every kind goes through.

mod api_token;
mod custom_domain;
mod mailbox;
mod system_domain;
mod tenant;
mod webhook;

use tempmail_crds::{ApiToken, CustomDomain, Mailbox, SystemDomain, Tenant, Webhook};

use crate::reconcile::driver::Reconcile;

/// What is done once for each kind.
pub(crate) trait KindVisitor {
    /// Does it for the kind `K`.
    fn visit<K: Reconcile>(&mut self);
}

/// Visits every kind that the operator reconciles: the others are not watched.
pub(crate) fn visit_kinds(visitor: &mut impl KindVisitor) {
    visitor.visit::<Tenant>();
    visitor.visit::<SystemDomain>();
    visitor.visit::<CustomDomain>();
    visitor.visit::<Webhook>();
    visitor.visit::<ApiToken>();
    visitor.visit::<Mailbox>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Names(Vec<String>);

    impl KindVisitor for Names {
        fn visit<K: Reconcile>(&mut self) {
            self.0.push(K::kind(&()).into_owned());
        }
    }

    #[test]
    fn visits_every_kind_that_has_a_definition() {
        let mut visited = Names::default();
        visit_kinds(&mut visited);
        let defined = tempmail_crds::all().into_iter().map(|definition| definition.spec.names.kind);
        assert_eq!(visited.0, defined.collect::<Vec<_>>());
    }
}
