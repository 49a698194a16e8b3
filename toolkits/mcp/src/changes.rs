//! The notices of a server that its list of tools changed. The older protocol tells it unasked, the newer one only to who
//! listens.

use rmcp::RoleClient;
use rmcp::model::SubscriptionFilter;
use rmcp::service::{Peer, Subscription};
use tokio::sync::watch;

/// Notices that come, until the conversation ends. It does not keep the conversation going.
pub(crate) struct Changes {
    told: watch::Receiver<u64>,
    peer: Peer<RoleClient>,
    listening: Listening,
}

enum Listening {
    /// The server would tell, if it were asked to.
    NotYet,
    Yes(Box<Subscription>),
    /// It tells unasked, or never.
    No,
}

impl Changes {
    pub(crate) fn new(told: watch::Receiver<u64>, peer: Peer<RoleClient>) -> Self {
        let listening = match peer.peer_info() {
            Some(info) if !info.protocol_version.has_initialize() => {
                let tools = info.capabilities.tools.as_ref();
                let tells = tools.is_some_and(|tools| tools.list_changed == Some(true));
                if tells { Listening::NotYet } else { Listening::No }
            }
            _ => Listening::No,
        };
        Self { told, peer, listening }
    }

    /// Ends at the next notice; the error says that there will be none any more.
    pub(crate) async fn next(&mut self) -> Result<(), ()> {
        loop {
            match &mut self.listening {
                Listening::No => return self.told.changed().await.map_err(drop),
                Listening::NotYet => {
                    let filter = SubscriptionFilter::builder().tools_list_changed().build();
                    tokio::select! {
                        told = self.told.changed() => return told.map_err(drop),
                        heard = self.peer.listen(filter) => {
                            self.listening = heard.map_or(Listening::No, |heard| Listening::Yes(Box::new(heard)));
                        }
                    }
                    if matches!(self.listening, Listening::Yes(_)) {
                        // What changed before it listened was not told.
                        return Ok(());
                    }
                }
                Listening::Yes(subscription) => {
                    tokio::select! {
                        told = self.told.changed() => return told.map_err(drop),
                        heard = subscription.next() => match heard {
                            Ok(Some(_)) => return Ok(()),
                            _ => self.listening = Listening::No,
                        },
                    }
                }
            }
        }
    }
}
