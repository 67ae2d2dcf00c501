//! Contact where a turn is refused for another reason than what it says: somebody in crisis is answered by
//! the system itself.

use crate::deliver::DeliverError;
use crate::deliver::Reply;
use crate::engine::Engine;
use crate::off_thread;
use crate::preflight::{Input, Stop, is_crisis};
use crate::spend::Spending;
use crate::turn::Turn;
use conclave_detect::Detector;
use tokio::time::Instant;

impl Engine {
    /// Our own words with places to find help, recorded like any decision, if the person seems to be in
    /// crisis; `None` if not. No model is asked, and of somebody who is not in crisis nothing is kept.
    ///
    /// # Errors
    /// When the model is unknown or the decision cannot be recorded.
    pub async fn contact(&self, turn: Turn) -> Result<Option<Reply>, DeliverError> {
        let in_force = self.in_force(&turn.tenant);
        self.permit(&turn, &in_force.policy)?;
        let offered = self.models.find(&turn.model);
        let offered = offered.ok_or_else(|| DeliverError::UnknownModel(turn.model.clone()))?;
        let input = Input::of(&turn, 0);
        let read = move |detector: &Detector| input.read(detector);
        let heard = off_thread::reading(&self.detector, read).await;
        if !heard.last().is_some_and(|last| is_crisis(last.reading.crisis)) {
            return Ok(None);
        }
        self.admit(&turn)?;
        let started = Instant::now();
        let id = self.new_audit_id(self.clock.now_ms());
        let examined = self.examine(&turn, id, &in_force.policy).await?;
        let choice = self.stopped(&turn, &examined, Stop::CrisisWithMeans);
        let spending = Spending::unlimited(offered);
        let paid = (&spending, &in_force);
        self.conclude(&turn, examined, vec![choice], None, paid, started).await.map(Some)
    }
}
